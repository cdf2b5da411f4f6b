// Package vitals keeps what a person wants to see of a server at a glance: how it went
// in the last hour, what became of each session and why, which code waits for a person,
// and what should be looked at first. The live view and coppice top show it.
//
// # Guarantees
//
//   - It only listens. [Vitals.Attachment] never holds a call back and fails none;
//     [Vitals.Hear] does not block.
//   - What it keeps is bounded: the samples of an hour, the newest moments of each of
//     at most 10,000 sessions, where the ones that were touched longest ago are
//     forgotten first, and one question for each call that waits.
//   - It keeps no output and no code: only the prompts of questions and the reasons of
//     ends, each cut at 300 characters.
//   - When Close returns, its goroutine has ended.
//
// # How a session is
//
//	well ──died, hung, a call was lost──▶ shaky ──a call goes well──▶ well
//	 │                                      │
//	 ├──input()──▶ asks ──answered, expired, the call ended──▶ as before
//	 └──failed for good──▶ bad ──reset, stopped──▶ well
package vitals
