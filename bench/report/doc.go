// Package report reads files of benchmark results: it compares two of them, and
// writes one as Markdown with SVG pictures.
//
// # Comparing
//
// These machines are noisy, and often more so between two runs than within one.
// So each round of a scenario is divided by its floor: the round trip of a bare
// pipe to the same Python process, measured just before it. What slows the whole
// machine slows both. The samples of the two files are compared with the
// Mann-Whitney U test, corrected for the number of comparisons (Holm), and a
// difference counts when it is both significant at 5 % and larger than 5 %.
//
// Rounds that were measured in turns, one of each file after the other, saw the same
// machine: each is divided by its counterpart, and Wilcoxon's signed-rank test takes the
// place of Mann-Whitney's. That finds a tenth where files that were made one after the
// other hide a fifth.
//
// # Guarantees
//
//   - A metric with fewer than six rounds in either file is shown and never
//     called significant.
//   - A target that is not reached, or was not measured, is named as such.
//   - The pictures need no network, no script and no font of their own.
package report
