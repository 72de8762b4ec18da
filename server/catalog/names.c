/* Which names databases and collections may have, and which databases there are: those with a collection. */
#include <ctype.h>
#include <stdlib.h>

#include "server/catalog/catalog_private.h"

struct db_entry {
    uint64_t n; /* collections */
    char name[DB_MAX + 1];
};

static const char *const system_names[] = {
    "system.buckets", "system.js",    "system.keys",     "system.new_users", "system.preimages", "system.profile",
    "system.replset", "system.roles", "system.sessions", "system.users",     "system.version",   "system.views",
};

static int check_db(const char *db, struct err *err)
{
    size_t n = strlen(db);
    if (n == 0 || n > DB_MAX || strpbrk(db, "/\\. \"$"))
        return err_set(err, ERR_INVALID_NAMESPACE, "Invalid database name: '%s'", db);
    return 0;
}

static bool system_name_allowed(const char *name)
{
    for (size_t i = 0; i < OV_LEN(system_names); i++)
        if (strcmp(name, system_names[i]) == 0)
            return true;
    return false;
}

int names_check(const char *db, const char *name, struct err *err)
{
    int rc = check_db(db, err);
    if (rc != 0)
        return rc;
    if (!*name || *name == '.')
        return err_set(err, ERR_INVALID_NAMESPACE, "Invalid namespace specified '%s.%s'", db, name);
    if (strlen(db) + 1 + strlen(name) > NS_MAX)
        return err_set(err, ERR_INVALID_NAMESPACE, "Fully qualified namespace is too long. Namespace: %s.%s Max: %d",
                       db, name, NS_MAX);
    if (strchr(name, '$'))
        return err_set(err, ERR_INVALID_NAMESPACE, "Invalid collection name: %s", name);
    if (strncmp(name, "system.", 7) == 0 && !system_name_allowed(name))
        return err_set(err, ERR_INVALID_NAMESPACE, "Invalid system namespace: %s.%s", db, name);
    return 0;
}

static struct slice lower(const char *db, char out[DB_MAX + 1])
{
    size_t n = 0;
    for (; n < DB_MAX && db[n]; n++)
        out[n] = (char)tolower((unsigned char)db[n]);
    return slice_of(out, n);
}

int names_enter(struct catalog *c, const char *db, struct err *err)
{
    char text[DB_MAX + 1], other[DB_MAX + 1] = "";
    struct slice key = lower(db, text);
    mutex_lock(&c->db_lock);
    struct db_entry *d = map_get(c->dbs, key);
    if (!d) {
        d = ov_calloc(1, sizeof(*d));
        memcpy(d->name, db, key.n);
        map_put(c->dbs, key, d);
    }
    if (strcmp(d->name, db) == 0)
        d->n++;
    else
        memcpy(other, d->name, sizeof(other));
    mutex_unlock(&c->db_lock);
    if (*other)
        return err_set(err, 13297, "db already exists with different case already have: [%s] trying to create [%s]",
                       other, db);
    return 0;
}

void names_leave(struct catalog *c, const char *db)
{
    char text[DB_MAX + 1];
    struct slice key = lower(db, text);
    mutex_lock(&c->db_lock);
    struct db_entry *d = map_get(c->dbs, key);
    OV_ASSERT(d && d->n > 0);
    if (--d->n == 0) {
        map_remove(c->dbs, key);
        free(d);
    }
    mutex_unlock(&c->db_lock);
}

void names_free(struct catalog *c)
{
    size_t pos = 0;
    struct slice key;
    void *d;
    while (map_next(c->dbs, &pos, &key, &d))
        free(d);
    map_free(c->dbs);
}
