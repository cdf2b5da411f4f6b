# What root does on the new machine; a user does the rest, who has no network but the
# loopback: what a session needs has come with the package.
set -eu
. /try/steps.sh
export DEBIAN_FRONTEND=noninteractive
quiet="-qq -o Dpkg::Use-Pty=0"

echo "Debian $(cat /etc/debian_version), $(dpkg-query -W | wc -l) packages"
for program in go gcc python3 coppice; do
	! command -v $program >/dev/null || {
		echo "install: this machine has $program already" >&2
		exit 1
	}
done
useradd --create-home visitor

# visit SCRIPT runs a script as a user of the machine.
visit() {
	unshare --net bash -c '
		python3 -c "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh\", b\"lo\", 0x41))"
		exec setpriv --reuid visitor --regid visitor --init-groups env -i HOME=/home/visitor USER=visitor LANG=C.UTF-8 \
			PATH=/usr/local/bin:/usr/bin:/bin bash "$1"' bash "$1"
}

step "" "apt-get $quiet update"
step "" "apt-get $quiet install /try/dist/coppice_*.deb"
step "Status: install ok installed" "dpkg --status coppice"
# For pip, and for a server of files with a certificate.
step "" "apt-get $quiet install --no-install-recommends python3-venv curl openssl ca-certificates"
visit /try/package.sh

step "" "apt-get $quiet purge coppice"
refused "" "command -v coppice || ls -d /usr/share/doc/coppice"
visit /try/archive.sh
echo
echo "installed from the package and from the archive, on a Debian with nothing but its minimal packages"
