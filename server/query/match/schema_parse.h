/* Parsing $jsonSchema: what its two files share. */
#ifndef OV_MATCH_SCHEMA_PARSE_H
#define OV_MATCH_SCHEMA_PARSE_H

#include "server/query/match/schema.h"

/* The keywords, in the order in which they are parsed: places in the table. */
/* clang-format off */
enum {
    TITLE,
    DESCRIPTION,
    TYPE,
    BSON_TYPE,
    PATTERN,
    MAX_LENGTH,
    MIN_LENGTH,
    MULTIPLE_OF,
    MAXIMUM,
    EXCLUSIVE_MAXIMUM,
    MINIMUM,
    EXCLUSIVE_MINIMUM,
    ENCRYPT,
    ENCRYPT_METADATA,
    REQUIRED,
    PROPERTIES,
    PATTERN_PROPERTIES,
    ADDITIONAL_PROPERTIES,
    MIN_PROPERTIES,
    MAX_PROPERTIES,
    DEPENDENCIES,
    MIN_ITEMS,
    MAX_ITEMS,
    UNIQUE_ITEMS,
    ITEMS,
    ADDITIONAL_ITEMS,
    ALL_OF,
    ANY_OF,
    ONE_OF,
    NOT,
    ENUM,
    KEYWORDS
};
/* clang-format on */
struct keywords {
    struct belem e[KEYWORDS]; /* name NULL: not there */
};

/* Parses one keyword, `e`, of the schema that has all of `k`. */
typedef int (*keyword_fn)(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s);

int schema_required(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_properties(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_pattern_properties(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_additional_properties(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_dependencies(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_unique(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_items(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_additional_items(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_logical(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_not(struct parser *, const struct keywords *, const struct belem *, struct schema *);
int schema_enum(struct parser *, const struct keywords *, const struct belem *, struct schema *);

OV_MUST_CHECK int schema_parse(struct parser *ps, const uint8_t *doc, struct schema **out);
OV_MUST_CHECK int schema_regex(struct parser *ps, const char *text, uint32_t n, const struct match **out);
int schema_mismatch(struct parser *ps, const struct belem *e, const char *what); /* the keyword must be `what` */

#endif
