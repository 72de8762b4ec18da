/* What clients ask first: hello in both topologies, ping, buildInfo. hello is also the drivers' monitor: with a topologyVersion it is held
 * until something changes (here: nothing does) or maxAwaitTimeMS are over, and with exhaustAllowed it goes on by itself. */
#include "server/commands/diagnostic.h"
#include "server/commands/dispatch.h"

#include <gnu/libc-version.h>

#include "server/base/clock.h"
#include "server/base/version.h"

#define METADATA_MAX 512
#define APP_NAME_MAX 128

struct hello {
    int64_t answer_at_us; /* 0: at once */
    bool streams;
};

/* ---- the client's metadata ---- */

static const char *const required[][2] = {{"driver", "name"}, {"driver", "version"}, {"os", "type"}};

static int check_metadata(struct command_ctx *cx, const uint8_t *meta)
{
    struct err *err = &cx->op.err;
    struct bval app = bdoc_get(meta, "application");
    uint32_t n;
    if (cx->client->got_metadata)
        return err_set(err, ERR_CLIENT_METADATA_CANNOT_BE_MUTATED,
                       "The client metadata document may only be sent in the first hello");
    if (bdoc_len(meta) > METADATA_MAX)
        return err_set(err, ERR_CLIENT_METADATA_DOCUMENT_TOO_LARGE,
                       "The client metadata document must be less then or equal to %d bytes", METADATA_MAX);
    if (app.type == BSON_TYPE_DOCUMENT) {
        struct bval name = bdoc_get(bval_doc(app), "name");
        if (name.type == BSON_TYPE_UTF8) {
            const char *s = bval_str(name, &n);
            if (n > APP_NAME_MAX)
                return err_set(err, ERR_CLIENT_METADATA_APP_NAME_TOO_LARGE,
                               "The 'application.name' field must be less then or equal to %d bytes in the client "
                               "metadata document",
                               APP_NAME_MAX);
            memcpy(cx->client->app_name, s, n);
            cx->client->app_name[n] = 0;
        }
    }
    for (size_t i = 0; i < OV_LEN(required); i++) {
        struct bval part = bdoc_get(meta, required[i][0]);
        if (part.type != BSON_TYPE_DOCUMENT)
            return err_set(err, ERR_CLIENT_METADATA_MISSING_FIELD,
                           "Missing required sub-document '%s' in the client metadata document", required[i][0]);
        if (bdoc_get(bval_doc(part), required[i][1]).type != BSON_TYPE_UTF8)
            return err_set(err, ERR_CLIENT_METADATA_MISSING_FIELD,
                           "Missing required field '%s.%s' in the client metadata document", required[i][0],
                           required[i][1]);
    }
    cx->client->got_metadata = true;
    return 0;
}

static int read_metadata(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, "client");
    if (bval_is_missing(v))
        return 0;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "The client metadata document must be an object, not %s",
                       bval_type_name(v.type));
    return check_metadata(cx, bval_doc(v));
}

/* ---- compression ---- */

static const struct {
    const char *name;
    unsigned id; /* of OP_COMPRESSED */
} compressors[] = {{"snappy", 1}, {"zlib", 2}, {"zstd", 3}};

/* The client's names that we have, in its order. */
static void agree_compression(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, "compression");
    struct biter it;
    struct belem e;
    char scratch[12];
    uint32_t n = 0, len;
    size_t at = 0;
    if (v.type != BSON_TYPE_ARRAY)
        return;
    cx->client->compressors = 0;
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);) {
        for (size_t i = 0; i < OV_LEN(compressors) && e.v.type == BSON_TYPE_UTF8; i++) {
            uint32_t bit = 1u << compressors[i].id;
            if (!(cx->server->compressors & bit) || cx->client->compressors & bit ||
                strcmp(compressors[i].name, bval_str(e.v, &len)) != 0)
                continue;
            if (n == 0)
                at = bw_arr(cx->reply, "compression");
            cx->client->compressors |= bit;
            bw_str(cx->reply, bw_index(n++, scratch), compressors[i].name);
        }
    }
    if (n)
        bw_end(cx->reply, at);
}

/* ---- waiting ---- */

static int read_wait(struct command_ctx *cx, struct hello *h)
{
    struct err *err = &cx->op.err;
    struct bval version = bdoc_get(cx->req->body, "topologyVersion");
    struct bval wait = bdoc_get(cx->req->body, "maxAwaitTimeMS");
    int64_t ms, counter;
    if (bval_is_missing(version) != bval_is_missing(wait))
        return err_set(err, 31368, "%s",
                       bval_is_missing(version) ? "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'"
                                                : "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'");
    if (bval_is_missing(version))
        return !cx->req->exhaust_allowed
                   ? 0
                   : err_set(err, 51756, "An exhaust request must specify 'topologyVersion' and 'maxAwaitTimeMS'");
    if (version.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_TYPE_MISMATCH,
                       "BSON field 'hello.topologyVersion' is the wrong type '%s', expected type 'object'",
                       bval_type_name(version.type));
    if (!bval_is_number(wait) || !bval_to_i64(wait, false, &ms) || ms < 0)
        return err_set(err, 31373, "maxAwaitTimeMS must be a non-negative integer");
    struct bval process = bdoc_get(bval_doc(version), "processId");
    struct bval count = bdoc_get(bval_doc(version), "counter");
    if (process.type != BSON_TYPE_OID)
        return err_set(err, ERR_IDL_FAILED_TO_PARSE,
                       "BSON field 'TopologyVersion.processId' is missing but a required field");
    if (count.type != BSON_TYPE_INT64 || (counter = bval_i64(count)) < 0)
        return err_set(err, 31372, "topologyVersion must have a non-negative counter");
    bool same = memcmp(process.p, cx->server->process_id, 12) == 0;
    if (same && counter > 0)
        return err_set(err, 31382,
                       "Received a topology version with counter: %lld which is greater than the server "
                       "topology version counter: 0",
                       (long long)counter);
    h->streams = cx->req->exhaust_allowed;
    if (same || cx->req->continued)
        h->answer_at_us = clock_mono_us() + ms * 1000;
    return 0;
}

/* ---- the answer ---- */

static void put_op_time(struct buf *b, const char *name, uint64_t ts)
{
    size_t at = bw_doc(b, name);
    bw_ts(b, "ts", ts);
    bw_i64(b, "t", 1);
    bw_end(b, at);
}

/* A set of one member: the address is the one that clients are told to use, or else the one this client came by. */
static void put_set(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    const char *me = cx->server->advertised ? cx->server->advertised : cx->client->local;
    uint64_t last = eng_visible(cx->server->engine);
    uint8_t election[12] = {0x7f, 0xff, 0xff, 0xff}; /* drivers order primaries by it: it grows with every start */
    store_be32(election + 4, (uint32_t)((uint64_t)cx->server->start_wall_ms >> 32));
    store_be32(election + 8, (uint32_t)cx->server->start_wall_ms);
    size_t at = bw_arr(b, "hosts");
    bw_str(b, "0", me);
    bw_end(b, at);
    bw_str(b, "setName", cx->server->set_name);
    bw_i32(b, "setVersion", 1);
    bw_bool(b, "secondary", false);
    bw_str(b, "primary", me);
    bw_str(b, "me", me);
    bw_oid(b, "electionId", election);
    at = bw_doc(b, "lastWrite");
    put_op_time(b, "opTime", last);
    bw_date(b, "lastWriteDate", (int64_t)(last >> 32) * 1000);
    put_op_time(b, "majorityOpTime", last);
    bw_date(b, "majorityWriteDate", (int64_t)(last >> 32) * 1000);
    bw_end(b, at);
}

static enum op_status answer(struct command_ctx *cx, struct hello *h)
{
    struct buf *b = cx->reply;
    struct bval ok = bdoc_get(cx->req->body, "helloOk");
    if (ok.type == BSON_TYPE_BOOL && bval_bool(ok))
        bw_bool(b, "helloOk", true);
    bw_bool(b, cx->req->name[0] == 'h' ? "isWritablePrimary" : "ismaster", true);
    put_topology_version(cx);
    if (cx->server->set_name)
        put_set(cx);
    bw_i32(b, "maxBsonObjectSize", BSON_DOC_MAX);
    bw_i32(b, "maxMessageSizeBytes", 48000000);
    bw_i32(b, "maxWriteBatchSize", 100000);
    bw_date(b, "localTime", clock_wall_ms());
    bw_i32(b, "logicalSessionTimeoutMinutes", 30);
    bw_i32(b, "connectionId", (int32_t)cx->client->id);
    bw_i32(b, "minWireVersion", 0);
    bw_i32(b, "maxWireVersion", OV_COMPAT_MAX_WIRE_VERSION);
    bw_bool(b, "readOnly", false);
    agree_compression(cx);
    cx->exhaust_more = h->streams;
    return OP_DONE;
}

static int check_load_balanced(struct command_ctx *cx)
{
    bool balanced;
    int rc = arg_bool(cx, "loadBalanced", false, &balanced);
    return rc != 0 || !balanced ? rc
                                : err_set(&cx->op.err, ERR_LOAD_BALANCER_SUPPORT_MISMATCH,
                                          "this server does not take connections through a load balancer");
}

enum op_status cmd_hello(struct command_ctx *cx)
{
    struct hello *h = cx->state;
    if (!h) {
        cx->state = h = arena_zalloc(cx->op.arena, sizeof(*h));
        if (check_load_balanced(cx) != 0 || read_wait(cx, h) != 0 || (!cx->req->continued && read_metadata(cx) != 0))
            return OP_DONE;
    }
    if (h->answer_at_us > clock_mono_us()) {
        cx->op.wake_at_us = h->answer_at_us;
        return OP_WAIT;
    }
    return answer(cx, h);
}

enum op_status cmd_ping(struct command_ctx *cx)
{
    return OP_DONE;
}

enum op_status cmd_build_info(struct command_ctx *cx)
{
    static const int32_t version[] = OV_COMPAT_VERSION_ARRAY;
    struct buf *b = cx->reply;
    char scratch[12];
    bw_str(b, "version", OV_COMPAT_VERSION);
    bw_str(b, "gitVersion", "octavo " OV_VERSION);
    bw_end(b, bw_arr(b, "modules"));
    bw_str(b, "allocator", "system");
    bw_str(b, "javascriptEngine", "none");
    bw_str(b, "sysInfo", "deprecated");
    size_t at = bw_arr(b, "versionArray");
    for (uint32_t i = 0; i < OV_LEN(version); i++)
        bw_i32(b, bw_index(i, scratch), version[i]);
    bw_end(b, at);
    at = bw_doc(b, "openssl");
    bw_str(b, "running", "disabled");
    bw_str(b, "compiled", "disabled");
    bw_end(b, at);
    at = bw_doc(b, "buildEnvironment");
    bw_str(b, "cc", "gcc " __VERSION__);
    bw_str(b, "libc", gnu_get_libc_version());
    bw_str(b, "target_arch", sizeof(void *) == 8 ? "64-bit" : "32-bit");
    bw_str(b, "target_os", "linux");
    bw_end(b, at);
    bw_i32(b, "bits", 8 * (int)sizeof(void *));
    bw_bool(b, "debug", false);
    bw_i32(b, "maxBsonObjectSize", BSON_DOC_MAX);
    at = bw_arr(b, "storageEngines");
    bw_str(b, "0", "octavo");
    bw_end(b, at);
    bw_str(b, "octavo", OV_VERSION);
    return OP_DONE;
}
