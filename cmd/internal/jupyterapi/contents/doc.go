// Package contents serves the files of one folder as the contents API of a Jupyter Server,
// for the front ends that keep notebooks: to list, open, save, rename and delete them, with
// a checkpoint for each.
//
//	GET    /api/contents/{path}?type=&format=&content=&hash=   a file, a notebook, a directory
//	POST   /api/contents/{path}                                a new one in a directory, or a copy
//	PUT    /api/contents/{path}                                saves it, whole or in pieces
//	PATCH  /api/contents/{path}                                gives it another path
//	DELETE /api/contents/{path}                                removes it
//	GET    /api/contents/{path}/checkpoints                    at most one
//	POST   /api/contents/{path}/checkpoints                    makes it
//	POST   /api/contents/{path}/checkpoints/checkpoint         goes back to it
//	DELETE /api/contents/{path}/checkpoints/checkpoint         removes it
//	GET    /files/{path}                                       the bytes of a file
//
// # Guarantees
//
//   - What paths may lead to is package files' to say: nothing outside of the folder. What
//     is hidden, whose name begins with a dot, is as if it were not there.
//   - A file is saved whole or not at all, also one that comes in pieces: it takes its place
//     with the last of them. A new one, and a copy, never takes the place of another.
//   - A directory is removed only when it is empty, or holds nothing but checkpoints.
//   - A notebook is checked to be one before it is saved. It is written as Jupyter does: its
//     lines one by one, so that versions can be compared, and its numbers as they came. One
//     of nbformat 3 is upgraded when it is read.
//   - Of one file at most [most] bytes are read or saved. What comes in pieces is in memory
//     until its end, together no more than that; when there is no room, what has waited
//     longest for its end is forgotten.
//
// It has no goroutines. It authenticates no one: mount it behind what does.
package contents
