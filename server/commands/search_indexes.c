/* Search indexes live in a service beside the server that there is none of. Clients ask whether it is there, and know this answer. */
#include "server/commands/ddl.h"

enum op_status cmd_search_indexes(struct command_ctx *cx)
{
    return command_fail(cx, ERR_SEARCH_NOT_ENABLED,
                        "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires "
                        "additional configuration. Please connect to Atlas or an AtlasCLI local deployment to enable. "
                        "For more information on how to connect, see "
                        "https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.");
}
