// Package send delivers notices to receivers: Prometheus Alertmanagers and webhooks.
//
// A Hub takes in what begins and ends to be wrong, without ever waiting. Its goroutine lets a
// notify.Receiver decide what each receiver is told, and puts that into the receiver's outbox.
// Each outbox has a goroutine that sends, and sends again with back-off until the receiver
// takes it. An outbox is bounded: what it has no room for, and what the receiver refuses for
// good, is a dead letter. Another goroutine keeps on disk what receivers were told and is not
// over, so that a restart tells it to nobody twice, and ends what has ended meanwhile.
//
// The owner of a Hub calls Run, and waits for it to end.
package send
