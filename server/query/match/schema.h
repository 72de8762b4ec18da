/* A $jsonSchema, parsed: what its files share. Everything is optional: a schema without keywords accepts every value. Names are sorted. */
#ifndef OV_MATCH_SCHEMA_H
#define OV_MATCH_SCHEMA_H

#include "server/query/match/match_private.h"

struct schema;
struct schema_names {
    struct slice *p; /* sorted, unique */
    uint32_t n;
};
struct schema_list { /* allOf, anyOf, oneOf, items of a tuple */
    struct schema **p;
    uint32_t n;
};
struct schema_property { /* sorted by name; equal names are possible: all of them apply */
    struct slice name;
    struct schema *schema;
};
struct schema_pattern {
    const struct match *regex;
    struct schema *schema;
};
struct schema_dependency { /* a field asks for others, or for a schema of the whole object */
    struct slice name;
    struct schema_names names;
    struct schema *schema; /* or NULL */
};

struct schema {
    uint32_t types; /* bits of match_type_bit; 0: any */
    /* numbers */
    const struct match *minimum, *maximum; /* comparisons */
    bool has_multiple;
    struct bval multiple;
    /* strings */
    const struct match *pattern;
    int64_t min_length, max_length; /* code points; -1: none. So are the other amounts */
    /* arrays */
    int64_t min_items, max_items;
    bool unique_items;
    struct schema *items;
    bool is_tuple;
    struct schema_list tuple;
    bool no_additional_items;
    struct schema *additional_items;
    /* objects */
    struct schema_names required;
    struct schema_property *properties;
    uint32_t n_properties;
    struct schema_pattern *patterns;
    uint32_t n_patterns;
    bool no_additional_properties;
    struct schema *additional_properties;
    int64_t min_properties, max_properties;
    struct schema_dependency *dependencies;
    uint32_t n_dependencies;
    /* any value */
    struct schema_list all_of, any_of, one_of;
    struct schema *not_;
    bool has_enum;
    struct bval *values;
    uint32_t n_values;
};

int schema_by_slice(const void *a, const void *b); /* for qsort and bsearch: of structs that begin with a slice */

/* Equal, whatever the order of fields in documents. schema_equal.c */
bool schema_equal(struct bval a, struct bval b);
/* Has the array two equal elements? Takes memory for a moment, so that long arrays make no quadratic work. */
bool schema_has_duplicates(const uint8_t *array);
/* Is v (a number) a whole multiple of `of` (positive)? In decimal, as the real server: 0.3 is one of 0.1. schema_number.c */
bool schema_is_multiple(struct bval v, struct bval of);

#endif
