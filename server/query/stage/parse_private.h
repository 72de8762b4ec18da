/* Parsing stages. */
#ifndef OV_PARSE_PRIVATE_H
#define OV_PARSE_PRIVATE_H

#include "server/query/stage/stage.h"

struct parse {
    struct arena *arena;
    struct err *err;
};
int parse_group(struct parse *p, struct bval v, struct stage_spec *out); /* parse_group.c */

#endif
