// Package notify is pure: it decides who is to be told of what is wrong, and when.
//
// A Condition is something that is wrong: an endpoint, a cluster or a zone is down, no
// checker is connected, and so on. Its Key is the same from its beginning to its end. A
// Receiver takes conditions that begin and end, and returns the notices to send: the
// beginning once the condition has lasted long enough, and the end if the beginning was
// told. A receiver has a bounded number of open notices. What begins beyond it is counted
// in one notice of the kind More.
//
// hdsd/notify/send delivers notices.
package notify
