/* Shapes: which fields a document inside a command may have, of which types and values, as data. A null counts as absent. */
#ifndef OV_SHAPE_H
#define OV_SHAPE_H

#include "protocol/bson/bson.h"

enum shape_type { SHAPE_BOOL = 1, SHAPE_NUMBER = 2, SHAPE_STRING = 4, SHAPE_DOC = 8, SHAPE_ARRAY = 16 };
enum shape_flags {
    SHAPE_REQUIRED = 1,
    SHAPE_NO_NULL = 2, /* a null is a value of the wrong type */
    SHAPE_OF_DOCS = 4, /* array: each element is a document or null */
    SHAPE_NO_NUL = 8,  /* string: no byte 0 in it */
};

struct shape_field {
    const char *name; /* NULL ends the list */
    uint8_t types, flags;
    int64_t min, max;                 /* a number, made integral; both 0: any */
    const char *const *words;         /* the values a string may have, NULL-terminated; NULL: any */
    const struct shape_field *fields; /* of a document, which has no others; NULL: any */
};

/* Checks doc; `path` begins the names in messages. Errors: 40415 for an unknown field, 40414 for one that is missing, 14 for the wrong type,
 * 2 for the wrong value. Returns the code. */
OV_MUST_CHECK int shape_check(struct err *err, const char *path, const struct shape_field *fields, const uint8_t *doc);

/* The same for those fields alone that the shape names: of a command, whose other fields are checked elsewhere. */
OV_MUST_CHECK int shape_check_known(struct err *err, const char *path, const struct shape_field *fields,
                                    const uint8_t *doc);

/* A collation; what the options say together is checked too. */
OV_MUST_CHECK int shape_check_collation(struct err *err, const uint8_t *collation);

#endif
