/* Server-side cursors: what find and aggregate leave open between getMores. A cursor pins nothing of the engine's meanwhile: it keeps its
 * place by key and reads on at a newer snapshot. Thread: any; one operation at a time has a cursor taken. Inside a step, unless said. */
#ifndef OV_CURSORS_H
#define OV_CURSORS_H

#include "server/base/map.h"
#include "server/catalog/catalog.h"
#include "server/op/operation.h"
#include "server/query/stage/stage.h"

#define CURSOR_IDLE_US (600 * 1000000LL) /* an idle cursor is closed after ten minutes */

struct cursors;
struct cursors *cursors_new(struct engine *e, struct catalog *catalog);
void cursors_free(struct cursors *cs); /* closes all; none is taken. Outside a step; accepts NULL */
/* Closes cursors that have been idle too long, and those of dropped collections. Outside a step; to be called about once a second. */
void cursors_tick(struct cursors *cs, int64_t now_mono_us);

struct cursor {          /* belongs to whoever made or took it, but for the last part */
    struct arena *arena; /* everything below lives in it */
    struct pipeline *pipe;
    struct eng_txn *txn;     /* NULL: over documents that were in memory already */
    struct collection *coll; /* a reference; NULL: there was no such collection, or none is read */
    const struct plan *plan;
    const char *ns; /* "db.coll", as replies tell it */
    bool has_lsid;  /* made in a session: only read on in it */
    uint8_t lsid[16];
    bool no_timeout;
    int64_t time_left_us; /* of the maxTimeMS of the command that made it; 0: no limit */
    bool own_arena;
    /* the table's */
    int64_t id; /* 0: not in the table */
    int64_t idle_since_us;
    _Atomic bool killed;
    bool taken;
    struct cursor *next, *prev;
};

/* A cursor with an arena of its own, not in the table. */
struct cursor *cursor_new(struct cursors *cs);
/* A cursor of one command, in the arena of the operation: it cannot enter the table. */
void cursor_init(struct cursor *c, struct arena *a);
/* Closes pipeline, transaction and reference; then its memory is gone (cursor_new), or it is empty (cursor_init). Not in the table. */
void cursor_free(struct cursors *cs, struct cursor *c);

/* Suspends the cursor, lets go its snapshot and puts it into the table, idle. Its id: others may use and free it from then on. */
int64_t cursors_add(struct cursors *cs, struct cursor *c);
enum cursor_found { CURSOR_OK, CURSOR_NOT_FOUND, CURSOR_BUSY };
/* Takes it: nobody else gets it until cursors_give_back or cursors_discard. */
enum cursor_found cursors_take(struct cursors *cs, int64_t id, struct cursor **out);
/* As cursors_add for one that was taken. If it was killed meanwhile it is freed. */
void cursors_give_back(struct cursors *cs, struct cursor *c);
/* Out of the table and freed. */
void cursors_discard(struct cursors *cs, struct cursor *c);
/* False: there is none. One that is taken is freed by its user, whose cursor_killed turns true. */
bool cursors_kill(struct cursors *cs, int64_t id);
/* All that were made in one of these sessions, the keys of the map; as cursors_kill. */
void cursors_kill_sessions(struct cursors *cs, const struct map *sessions);
static inline bool cursor_killed(const struct cursor *c)
{
    return atomic_load_explicit(&c->killed, memory_order_relaxed);
}

struct cursors_stats {
    int64_t open, no_timeout, timed_out; /* open ones; closed by the tick since the start */
};
void cursors_stats(struct cursors *cs, struct cursors_stats *out); /* thread: any, inside a step or not */

#endif
