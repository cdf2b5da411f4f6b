# What the user of a machine without the package does: install.sh, from a folder and from
# a server of files, and what it refuses.
set -eu
. /try/steps.sh
mkdir ~/archive
cd ~/archive
export HOME=$PWD

step "/.local/bin/coppice" "sh /try/dist/install.sh --from /try/dist"
step "2" "~/.local/bin/coppice run -c '1+1'"

# Neither an archive that is not what the sums say nor sums that are not those of the archive.
cp -R /try/dist changed
printf x >>"$(echo changed/coppice_*.tar.gz)"
refused "nothing was installed" "sh /try/dist/install.sh --from changed --dir changed/bin"
cp -R /try/dist wrong
sed -i '/\.tar\.gz$/s/^[0-9a-f]\{8\}/00000000/' wrong/SHA256SUMS
refused "nothing was installed" "sh /try/dist/install.sh --from wrong --dir wrong/bin"
refused "" "ls -d changed/bin wrong/bin"

# As the README has it, with the address of a server that is here.
step "" "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
cat >files.py <<'END'
import functools
import http.server
import ssl

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="/try/dist")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
END
python3 files.py >files.log 2>&1 &
export CURL_CA_BUNDLE=$PWD/cert.pem
until_it "curl -fsS https://localhost:8443/SHA256SUMS"
step "is fetched/coppice" "curl -fsSL https://localhost:8443/install.sh | sh -s -- --from https://localhost:8443 --dir fetched"
step "2" "fetched/coppice run -c '1+1'"
unset CURL_CA_BUNDLE
refused "could not be downloaded" "sh /try/dist/install.sh --from https://localhost:8443 --dir unknown"
kill %1
