package main

// reasons say of packages why less than 70 % of them can be run by a test.
var reasons = map[string]string{}
