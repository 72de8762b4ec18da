/* A hash map from byte strings to pointers (open addressing, linear probing). Keys are copied. Thread: one at a time. */
#ifndef OV_MAP_H
#define OV_MAP_H

#include "server/base/base.h"

struct map;

struct map *map_new(void);
void map_free(struct map *m);                         /* not the values; accepts NULL */
void *map_get(const struct map *m, struct slice key); /* NULL if absent */
void *map_put(struct map *m, struct slice key,
              void *value);                        /* returns the value replaced, or NULL; value is not NULL */
void *map_remove(struct map *m, struct slice key); /* returns the value removed, or NULL */
size_t map_count(const struct map *m);
/* Walks in no order: start with *pos = 0, ends with false. The map must not change meanwhile. */
bool map_next(const struct map *m, size_t *pos, struct slice *key, void **value);

uint64_t hash_bytes(const void *p, size_t n); /* xxh3, 64 bits */

#endif
