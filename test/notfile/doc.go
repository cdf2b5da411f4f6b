// Package notfile puts what is no regular file at a path, for tests of whatever opens
// a path that somebody else names.
package notfile
