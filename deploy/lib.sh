# shellcheck shell=bash disable=SC2034
# What deploy/try, deploy/test and .ci/run share: talk, packages, the toolchain,
# processes that never outlive the script, free ports, a private PostgreSQL.
# Sourced after `set -euo pipefail`. Nothing here needs more than bash, awk,
# util-linux and dpkg, which every Debian and Ubuntu has.

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# Exit codes, as in sysexits.h.
readonly exit_usage=64 exit_missing=69 exit_no_create=73

# MARK: talk

# say LINE…
say() { printf '%s\n' "$@"; }

complain() { printf '%s\n' "$@" >&2; }

# fail CODE LINE… — every line a sentence, the last one the mend.
fail() {
    local code=$1
    shift
    printf '%s\n' "" "$@" >&2
    exit "$code"
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# MARK: packages

# Debian names, each with its reason in the README's table.
build_packages=(libpq-dev libcurl4-openssl-dev libmicrohttpd-dev libssl-dev)
try_packages=(curl)
test_packages=(curl openssl python3 nghttp2-server wrk)

package_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The folder of the newest PostgreSQL server on this machine, or nothing.
postgres_programs() {
    local folder
    while IFS= read -r folder; do
        if [ -x "$folder/postgres" ] && [ -x "$folder/initdb" ]; then
            printf '%s\n' "$folder"
            return 0
        fi
    done < <(printf '%s\n' /usr/lib/postgresql/*/bin | sort -t/ -k5 -rV)
    if folder=$(command -v postgres); then
        folder=$(dirname "$(readlink -f "$folder")")
        if [ -x "$folder/initdb" ]; then printf '%s\n' "$folder"; fi
    fi
}

# require_packages NAME… — installs what is missing, by name, and says so.
require_packages() {
    local package
    local -a missing=()
    if ! command -v dpkg-query >/dev/null; then
        complain "This is neither Debian nor Ubuntu, so nothing is installed for you. Needed here: $* and a PostgreSQL server."
        return 0
    fi
    for package in "$@"; do
        package_installed "$package" || missing+=("$package")
    done
    # Whoever brought a server of their own (another version, another source) needs no second one.
    [ -n "$(postgres_programs)" ] || missing+=(postgresql)
    [ ${#missing[@]} -gt 0 ] || return 0
    install_packages "${missing[@]}"
    for package in "${missing[@]}"; do
        package_installed "$package" || fail $exit_missing "The package $package is still missing after apt-get said it was done."
    done
}

install_packages() {
    local -a as_root=()
    say "Missing Debian packages: $*"
    if ! is_root; then
        if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
            as_root=(sudo -n)
        elif command -v sudo >/dev/null && [ -t 0 ] && [ -t 2 ]; then
            as_root=(sudo)
            say "Installing them needs root, so sudo may ask for your password."
        else
            fail $exit_missing "Installing them needs root. Please run this once, then try again:" "" \
                "    sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
        fi
    fi
    say "Installing them, which may take a minute: apt-get install --no-install-recommends $*"
    # In one root shell, so that the one file below is gone again whatever happens to us.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -s -- "$@" <<'ROOT' \
        || fail $exit_missing "apt-get could not install them; its own words are above."
set -u
# Debian's postgresql starts a server of its own when it is first installed. Nobody asked for one.
folder=/etc/postgresql-common/createcluster.d
made=
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    [ -d "$folder" ] || made=yes
    mkdir -p "$folder"
    printf 'create_main_cluster = false\n' > "$folder/lockstep-install.conf"
fi
log=$(mktemp)
put_back() {
    rm -f "$log" "$folder/lockstep-install.conf"
    [ -z "$made" ] || rmdir "$folder" 2>/dev/null
}
trap put_back EXIT
trap 'exit 130' HUP INT TERM
quiet='-qq -o=Dpkg::Use-Pty=0 -o=DPkg::Lock::Timeout=300'
apt-get $quiet update >"$log" 2>&1 || echo 'apt-get update failed; going on with the lists that are here.' >&2
# --no-remove: a machine's own choice (another libcurl's headers, say) is never undone.
apt-get $quiet install -y --no-install-recommends --no-remove "$@" </dev/null >>"$log" 2>&1 && exit 0
cat "$log" >&2
exit 1
ROOT
}

# MARK: toolchain

require_toolchain() {
    local folder said version
    if ! command -v swift >/dev/null; then
        for folder in "$HOME/.local/share/swiftly/bin" /opt/swift/usr/bin /usr/local/swift/usr/bin /usr/share/swift/usr/bin; do
            if [ -x "$folder/swift" ]; then
                export PATH="$folder:$PATH"
                break
            fi
        done
    fi
    command -v swift >/dev/null \
        || fail $exit_missing "There is no swift on this machine's PATH. Lockstep needs a Swift 6 toolchain." \
            "Get one from https://www.swift.org/install/linux/ and try again."
    said=$(swift --version 2>&1 </dev/null) || true
    version=$(sed -n 's/.*Swift version \([0-9][0-9.]*\).*/\1/p' <<<"$said")
    case $version in
        6.0* | [1-5].*)
            fail $exit_missing "This is Swift $version ($(command -v swift)). Lockstep's manifest needs 6.1 or newer." \
                "Get one from https://www.swift.org/install/linux/ and try again."
            ;;
        "")
            fail $exit_missing "Is this toolchain whole? $(command -v swift) --version says:" "$said" \
                "The Debian packages that a toolchain needs are listed at https://www.swift.org/install/linux/"
            ;;
    esac
}

# MARK: processes

# A process is known by its number and its start time together: a number alone may be someone else's by now.

# started PID — the start time of a living process, in clock ticks since boot; fails for a dead or a dead-but-unreaped one.
started() {
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # The name in brackets may hold blanks and brackets itself; what follows the last one is regular.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ "$1" != Z ] && [ "$1" != X ] || return 1
    printf '%s\n' "${20}"
}

alive() { [ "$(started "$1")" = "$2" ]; }

# note_process FILE PID — remembers it for later runs.
note_process() {
    local since
    since=$(started "$2") || return 0
    printf '%s %s\n' "$2" "$since" >"$1"
}

# stop_process FILE SIGNAL SECONDS — asks, waits, then kills the whole group; gone already is fine.
stop_process() {
    local file=$1 signal=$2 seconds=$3 pid since tries
    [ -e "$file" ] || return 0
    pid=
    since=
    read -r pid since <"$file" || true
    if [ -n "$pid" ] && [ -n "$since" ] && alive "$pid" "$since"; then
        kill "-$signal" "$pid" 2>/dev/null || true
        for ((tries = seconds * 10; tries > 0; tries--)); do
            alive "$pid" "$since" || break
            sleep 0.1
        done
        if alive "$pid" "$since"; then
            complain "$(basename "$file" .pid) (process $pid) did not stop in $seconds s, so it is killed."
            kill -KILL "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true
        fi
    fi
    rm -f "$file"
}

# stop_session SESSION SIGNAL SECONDS — as above for a leader, found with all that it started by the
# number that setsid gave them: compilers sit in process groups of their own.
stop_session() {
    local session=$1 signal=$2 seconds=$3 tries
    kill "-$signal" "$session" 2>/dev/null || true
    for ((tries = seconds * 10; tries > 0; tries--)); do
        [ -n "$(session_members "$session")" ] || return 0
        sleep 0.1
    done
    # shellcheck disable=SC2046
    kill -KILL $(session_members "$session") 2>/dev/null || true
}

# session_members SESSION — its living processes.
session_members() {
    local file stat
    for file in /proc/[0-9]*/stat; do
        { stat=$(<"$file"); } 2>/dev/null || continue
        # shellcheck disable=SC2086
        set -- $1 ${stat##*) }
        if [ "$5" = "$1" ] && [ "$2" != Z ] && [ "$2" != X ]; then
            file=${file#/proc/}
            printf '%s\n' "${file%/stat}"
        fi
    done
}

# start_process PIDFILE LOG DEATH COMMAND… — in the background, in a session of its own (a Ctrl-C
# reaches only this script, which then stops things in their order), and with a parent-death
# signal, so that even a killed script leaves nothing running.
start_process() {
    local file=$1 log=$2 death=$3
    shift 3
    setsid setpriv --pdeathsig "$death" -- "$@" </dev/null >>"$log" 2>&1 &
    note_process "$file" $!
}

# MARK: ports

port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_port FIRST [TAKEN…] — the first free one from FIRST upward, other than those named.
free_port() {
    local port last=$(($1 + 200)) taken=" ${*:2} "
    for ((port = $1; port < last; port++)); do
        case $taken in *" $port "*) continue ;; esac
        if ! port_taken "$port"; then
            printf '%s\n' "$port"
            return 0
        fi
    done
    fail $exit_missing "No free port on 127.0.0.1 between $1 and $last."
}

# random_hex BYTES
random_hex() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

# MARK: the private PostgreSQL

# PostgreSQL refuses to run as root, so root lends it the name of someone who may do nothing else.
postgres_user() {
    if ! is_root; then
        id -un
    elif getent passwd postgres >/dev/null; then
        printf 'postgres\n'
    else
        printf 'nobody\n'
    fi
}

# as_postgres COMMAND… — in the foreground, as the user above, from a folder that it can enter.
as_postgres() {
    local user
    if is_root; then
        user=$(postgres_user)
        (cd / && exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups env HOME=/ "$@")
    else
        "$@"
    fi
}

# postgres_home STATE — prints a fresh, empty folder for a cluster: STATE/postgres where the
# server's user can reach that, else one below /tmp, with a pointer to it left in STATE.
postgres_home() {
    local state=$1 home=$1/postgres user
    user=$(postgres_user)
    if mkdir -p "$home" && give_to "$user" "$home" && as_postgres test -w "$home" 2>/dev/null; then
        printf '%s\n' "$home"
        return 0
    fi
    rm -rf "$home"
    home=$(mktemp -d /tmp/lockstep-postgres-XXXXXXXX)
    printf '%s\n' "$home" >"$state/postgres.elsewhere"
    give_to "$user" "$home"
    printf '%s\n' "$home"
}

give_to() {
    chmod 0700 "$2" || return 1
    ! is_root || chown "$1:" "$2" 2>/dev/null
}

# start_postgres STATE PORT — a new cluster, reachable over TCP on this machine only and by
# password only. Leaves its connection string in $database_url.
start_postgres() {
    local state=$1 port=$2 programs home password tries
    programs=$(postgres_programs)
    home=$(postgres_home "$state")
    password=$(random_hex 16)
    # By a pipe to the user's own shell: no file and no argument list shows the password.
    # shellcheck disable=SC2016
    printf '%s\n' "$password" | as_postgres sh -c 'umask 077; cat > "$1/password"' sh "$home"
    if ! as_postgres "$programs/initdb" --pgdata="$home/data" --username=lockstep --pwfile="$home/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-instructions >"$state/initdb.log" 2>&1; then
        complain "initdb failed:"
        tail -n 20 "$state/initdb.log" >&2
        return 1
    fi
    local -a identity=()
    if is_root; then
        identity=(--reuid="$(postgres_user)" --regid="$(id -g "$(postgres_user)")" --init-groups)
    fi
    # Checkpoints far apart: right after one, each page that is touched goes to the log whole, and the random order of
    # notifications' hashes touches many. README.md says the same to operators.
    # The identity changes before the death signal is set: the kernel forgets it on a change of user.
    (
        cd /
        exec setsid setpriv "${identity[@]}" env HOME=/ setpriv --pdeathsig INT -- \
            "$programs/postgres" -D "$home/data" -p "$port" \
            -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c log_min_messages=warning \
            -c max_wal_size=8GB -c checkpoint_timeout=15min
    ) </dev/null >>"$state/postgres.log" 2>&1 &
    local pid=$!
    note_process "$state/postgres.pid" "$pid"
    export PGPASSWORD=$password
    for ((tries = 300; tries > 0; tries--)); do
        if "$programs/psql" -X -q -h 127.0.0.1 -p "$port" -U lockstep -d postgres -c 'SELECT 1' >/dev/null 2>&1; then
            "$programs/createdb" -h 127.0.0.1 -p "$port" -U lockstep lockstep
            unset PGPASSWORD
            database_url="postgresql://lockstep:$password@127.0.0.1:$port/lockstep"
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    unset PGPASSWORD
    complain "The private PostgreSQL did not come up:"
    tail -n 20 "$state/postgres.log" >&2
    return 1
}

# remove_postgres STATE — stops a cluster that an earlier run left, by its pid file or by PostgreSQL's own, and deletes it.
remove_postgres() {
    local state=$1 home pid
    stop_process "$state/postgres.pid" INT 20
    for home in "$state/postgres" "$(cat "$state/postgres.elsewhere" 2>/dev/null || true)"; do
        case $home in "$state/postgres" | /tmp/lockstep-postgres-*) ;; *) continue ;; esac
        pid=$(head -n 1 "$home/data/postmaster.pid" 2>/dev/null || true)
        # The number may be anybody's after a reboot: it is ours only if it works in this folder.
        if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$home/data" ]; then
            note_process "$state/postgres.pid" "$pid"
            stop_process "$state/postgres.pid" INT 20
        fi
        rm -rf "$home"
    done
    rm -f "$state/postgres.elsewhere"
}
