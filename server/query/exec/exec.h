/* Execution: pulls matching documents of a plan, page by page; sorts when the plan does not. */
#ifndef OV_EXEC_H
#define OV_EXEC_H

#include "server/op/operation.h"
#include "server/query/plan/plan.h"

enum exec_status { EXEC_ROW, EXEC_EOF, EXEC_WAIT, EXEC_AGAIN, EXEC_ERROR };
struct exec_row {
    uint64_t rid;
    uint64_t ts;         /* version of the record */
    const uint8_t *doc;  /* borrowed until the next exec_next or the step's end */
    int32_t array_index; /* for the positional operator; -1 */
};
struct exec;
/* `a`, plan and coll must live as long as the exec (a cursor's arena). Memory limit of a blocking sort: 100 MB, then ERR_QUERY_EXCEEDED_MEMORY_LIMIT… (292).
 * skip and limit (0 = none) are applied here; with a sort + limit only the top rows are kept. Opening reads nothing. */
struct exec *exec_open(struct arena *a, const struct plan *plan, const struct collection *coll, struct eng_txn *t,
                       uint64_t skip, uint64_t limit);
/* The next row. WAIT: call->wake comes; AGAIN: op_slice_over said so (op may be NULL). After either, call again; positions are kept by key.
 * Both have suspended the exec and held the txn already. The txn may have been refreshed meanwhile. EOF stays EOF. */
enum exec_status exec_next(struct exec *x, struct operation *op, struct eng_call *call, struct exec_row *row,
                           struct err *err);
/* A row was taken back by the caller (did not fit the batch): the next exec_next gives it again. */
void exec_unget(struct exec *x);
/* For a caller that ends its step after a ROW or before the next one (a wait of its own; a cursor between getMores): drops what is borrowed
 * and keeps the position by key. The caller holds or releases the txn. A row that was taken back is given again. */
void exec_suspend(struct exec *x);
/* No row can come any more, known without reading on: the limit is reached, a sort or look-up has given its last. */
bool exec_at_end(const struct exec *x);
void exec_close(struct exec *x); /* closes its scans; before eng_end; accepts NULL */
uint64_t exec_keys_examined(const struct exec *x);
uint64_t exec_docs_examined(const struct exec *x);
struct exec_counts { /* so far; matched: rows before sort, skip and limit */
    uint64_t keys, docs, matched, skipped, given;
};
void exec_counts(const struct exec *x, struct exec_counts *out);

#endif
