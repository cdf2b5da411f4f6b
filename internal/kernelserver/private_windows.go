package kernelserver

import "io/fs"

// rootDir is the drive that holds Windows, or whichever the host runs on.
const rootDir = `\`

// isOurs reports true: the temporary directory belongs to one user.
func isOurs(fs.FileInfo) bool { return true }
