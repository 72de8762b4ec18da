/* What compare.c and keyenc.c share about numbers. */
#ifndef OV_NUMBER_PRIVATE_H
#define OV_NUMBER_PRIVATE_H

#include "protocol/bson/bson.h"

/* Exact order of two numbers of any types; NaN is below all and equal to itself. */
int number_cmp(struct bval a, struct bval b);

/* The encoding of a number (keyenc.c), ascending; its length. Equal numbers give equal bytes. */
#define NUMBER_KEY_MAX 26
size_t number_key(uint8_t out[NUMBER_KEY_MAX], struct bval v);

#endif
