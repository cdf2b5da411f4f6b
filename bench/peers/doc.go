// Package peers measures what Coppice is compared with, on the same machine and
// in the same run: floors, which do the least that could be called the same work,
// and other ways to have Python run code.
//
// # Guarantees
//
//   - Each peer makes the same cell, 1+1, the same number of times, and each
//     answer is checked.
//   - What a peer starts has ended when Run returns.
//
// What each one is and is not stands in Peer.About: a figure without it says
// little. The floors speak the runner's protocol and the Jupyter protocol by
// themselves and share no code with Coppice's clients.
package peers
