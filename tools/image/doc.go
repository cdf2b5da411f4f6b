// Command image puts the parts of Coppice's container image together, as a folder in the
// OCI image layout: no daemon, no registry, no root.
//
//	image -parts DIR -out DIR -version V -epoch SECONDS [-arch amd64,arm64]
//
// For each architecture the folder of parts has
//
//	ARCH/root.tar     packages of Debian, extracted (release/image/build.sh makes it)
//	ARCH/packages/    Python packages, as they lie in site-packages
//	ARCH/coppice      the program
//	compiled/         ARCH/root.tar and ARCH/packages of one architecture, unpacked, with
//	                  the bytecode that its Python has made of them
//
// # Guarantees
//
//   - The same parts make the same bytes: entries are sorted, have the time of the epoch,
//     and belong to root; nothing of the machine is in them.
//   - Bytecode goes to a source of an architecture only where it was made of the same
//     bytes; it is not looked at again when the source changes, which cannot happen below
//     a root that is read-only.
//   - Three layers, of which the first changes with Debian, the second with the pinned
//     packages, and the third with each version.
package main
