// Package bytescan finds where a run of ordinary bytes ends, eight bytes at a time: output
// and notebooks are long strings of which few bytes need a closer look.
//
// The functions return exactly what a loop over each byte would, for any bytes; they keep
// nothing, and may be called from any goroutine. [Quoted] and [Unquote] read the strings of
// JSON that most output comes in, and agree with encoding/json on all that they read. There
// is no state, and so no state machine.
package bytescan
