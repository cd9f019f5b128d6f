#!/usr/bin/env bash
# Failover with what the servers have: GTIDs and semi-synchronous replication. See failover.md.
#
#   failover.sh status  SERVER...                what each has and follows
#   failover.sh promote REPLICA...               the source is gone: makes the furthest of these the source of the others
#   failover.sh rejoin  OLD NEW [--flashback]    makes the old source, up again, a replica of the new one
#
# A server is HOST:PORT. CLIENT is the client program with its options, split at blanks (default: mariadb, which reads ~/.my.cnf): a password
# belongs into an option file, where the list of processes does not show it. Its account needs CONNECTION_ADMIN, SYSTEM_VARIABLES_ADMIN,
# REPLICATION_SLAVE_ADMIN, REPLICATION CLIENT, RELOAD, and for --flashback the tables' rights.
# REPL_USER and REPL_PASSWORD are the account that replicas log in with; SOURCE_OPTIONS is what else CHANGE REPLICATION SOURCE TO says (default:
# GET_SOURCE_PUBLIC_KEY=1; SOURCE_SSL=1 with SOURCE_SSL_CA is better); OMNIBUS is the program (default: omnibus).
set -euo pipefail
CLIENT=${CLIENT:-mariadb} OMNIBUS=${OMNIBUS:-omnibus} REPL_USER=${REPL_USER:-repl} REPL_PASSWORD=${REPL_PASSWORD:-}
SOURCE_OPTIONS=${SOURCE_OPTIONS:-GET_SOURCE_PUBLIC_KEY=1} WAIT_S=${WAIT_S:-60}

die() { echo "failover: $*" >&2; exit 1; }

# The statements are read, since the list of processes shows arguments.
# shellcheck disable=SC2086 # CLIENT is words
sql() { $CLIENT --host="${1%:*}" --port="${1##*:}" --protocol=tcp --batch --raw --skip-column-names <<<"$2"; }

# A text as a string of SQL.
text() { printf "'%s'" "$(sed -e 's/\\/&&/g' -e "s/'/''/g" <<<"$1")"; }

executed() { sql "$1" "SELECT REPLACE(@@GLOBAL.gtid_executed, '\n', '')"; }

# What of the first set is not in the second.
beyond() { sql "$1" "SELECT GTID_SUBTRACT('$2', '$3')"; }

# A field of SHOW REPLICA STATUS, whose values may have several lines.
# shellcheck disable=SC2086
field() {
    $CLIENT --host="${1%:*}" --port="${1##*:}" --protocol=tcp --batch --raw --vertical --execute="SHOW REPLICA STATUS" |
        awk -v name="$2:" '$1 == name { on = 1; sub(/^ *[^:]*: ?/, "") } on && /^ *[A-Za-z_]+: / { exit } on { printf "%s", $0; seen = 1 } seen && !/,$/ { exit }'
}

follow() {
    sql "$1" "CHANGE REPLICATION SOURCE TO SOURCE_HOST='${2%:*}', SOURCE_PORT=${2##*:}, SOURCE_USER=$(text "$REPL_USER"),
              SOURCE_PASSWORD=$(text "$REPL_PASSWORD"), SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, $SOURCE_OPTIONS; START REPLICA"
}

status() {
    for server; do
        echo "$server  executed $(executed "$server")  follows $(field "$server" Source_Host):$(field "$server" Source_Port)"
    done
}

promote() {
    [ $# -gt 0 ] || die "name the replicas"
    # Nothing more comes in; what is here is applied. A transaction is acknowledged only when it is.
    for server; do
        sql "$server" "STOP REPLICA IO_THREAD"
        local received
        received=$(field "$server" Retrieved_Gtid_Set)
        [ -z "$received" ] || [ "$(sql "$server" "SELECT WAIT_FOR_EXECUTED_GTID_SET('$received', $WAIT_S)")" = 0 ] ||
            die "$server has not applied all it has received: see SHOW REPLICA STATUS there, and do it again"
        sql "$server" "STOP REPLICA"
    done
    local best=$1
    for server; do
        [ -z "$(beyond "$server" "$(executed "$best")" "$(executed "$server")")" ] && best=$server
    done
    for server; do
        local more
        more=$(beyond "$best" "$(executed "$server")" "$(executed "$best")")
        [ -z "$more" ] || die "$server has $more, which $best has not: nobody is promoted"
    done
    sql "$best" "RESET REPLICA ALL; SET PERSIST super_read_only = OFF; SET PERSIST read_only = OFF;
                 SET PERSIST rpl_semi_sync_source_enabled = ON"
    for server; do
        [ "$server" = "$best" ] || follow "$server" "$best"
    done
    echo "$best"
}

# The newest of the server's log files with nothing of the set in an earlier one.
first_file() {
    local name before
    for name in $(sql "$1" "SHOW BINARY LOGS" | cut -f1 | tac); do
        before=$(sql "$1" "SHOW BINLOG EVENTS IN '$name' LIMIT 2" | awk -F'\t' '$3 == "Previous_gtids" { print $6 }')
        [ "$(beyond "$1" "$2" "$before")" = "$(beyond "$1" "$2" '')" ] && echo "$name" && return
    done
    die "the log of $1 does not reach back to $2"
}

rejoin() {
    local old=$1 new=$2 how=${3:-} tail kept undo
    sql "$old" "STOP REPLICA; SET PERSIST super_read_only = ON"
    tail=$(beyond "$old" "$(executed "$old")" "$(executed "$new")")
    if [ -n "$tail" ]; then
        [ "$how" = --flashback ] || die "$old has $tail, which no client was told of and $new has not: take it back with --flashback, or make $old anew from a backup"
        kept=$(beyond "$old" "$(executed "$old")" "$tail")
        undo=$(mktemp)
        # shellcheck disable=SC2064
        trap "rm -f '$undo'" EXIT
        # A definition in the tail is an error here, before anything has been changed.
        # shellcheck disable=SC2086
        MYSQL_PWD=$REPL_PASSWORD $OMNIBUS binlog --read-from-remote-server --host="${old%:*}" --port="${old##*:}" --user="$REPL_USER" \
            --get-server-public-key --flashback --disable-log-bin --skip-gtids --include-gtids="$tail" --to-last-log "$(first_file "$old" "$tail")" > "$undo"
        sql "$old" "SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = ON"
        # shellcheck disable=SC2086
        $CLIENT --host="${old%:*}" --port="${old##*:}" --protocol=tcp < "$undo"
        sql "$old" "RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '$kept'; SET GLOBAL super_read_only = ON"
        echo "taken back: $tail"
    fi
    sql "$old" "SET PERSIST rpl_semi_sync_source_enabled = OFF; SET PERSIST rpl_semi_sync_replica_enabled = ON"
    follow "$old" "$new"
}

case ${1:-} in
    status | promote | rejoin) "$@" ;;
    *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;;
esac
