// Package spool is a first-in, first-out queue of byte records that stays in
// memory up to a bound and spills the rest to temporary files.
//
// It stands between a producer that must never wait and a consumer that may
// wait for minutes: a Jupyter server buffers without bound when its client
// stops reading, so the reader of such a connection puts every record here and
// goes on reading.
//
// # Guarantees
//
//   - Records come out in the order in which they went in, unchanged, once.
//   - [Spool.Put] never waits for the consumer. It may wait for the disk.
//   - The records held in memory sum up to at most [Options.Memory] bytes. One
//     record in the hands of the producer or of the consumer is not counted.
//   - Spilled records are in files of mode 0600 that have no name where the
//     operating system allows that; elsewhere [Spool.Close] removes them. A
//     file is given up as soon as its last record was taken, so that the disk
//     holds what waits, plus at most one segment ([Options.Segment]).
//   - No lock is held during disk I/O or while a caller waits.
//
// # Who may call
//
// One goroutine calls Put, one goroutine calls Get; they may be different ones.
// CloseWrite, Close and Stats may be called from any.
//
// # States
//
//	open ──CloseWrite──▶ ended ──Get of the last record──▶ drained (Get: io.EOF)
//	  └────────Close──────┴───────────Close──────────────▶ closed  (Get, Put: ErrClosed)
package spool
