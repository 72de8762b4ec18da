/* BSON for tests, written as JSON (libbson's relaxed extended JSON: {'$oid': '…'}, {'$numberLong': '5'}, {'$date': …}).
 * For the eye's sake single quotes may stand for double ones and field names need none: J("{a: 1, 'b.c': ['x']}").
 * \' is an apostrophe. A field name that starts with ~ gets a $ there after the conversion: {a: {~regex: 'x'}} is the query
 * operator, where libbson would read $regex as a regex literal. Thread: one at a time. */
#ifndef OV_TEST_JSON_H
#define OV_TEST_JSON_H

#include <stdint.h>

/* The bytes live until the program ends; bad JSON aborts with a message. */
const uint8_t *J(const char *json);

#endif
