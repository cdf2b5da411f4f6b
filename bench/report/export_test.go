package report

// SignedRank is for tests.
var SignedRank = signedRank
