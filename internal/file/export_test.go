package file

// OpenWith is how Open opens, with a first look and an opening of the caller's.
var OpenWith = open
