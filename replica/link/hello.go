package link

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	replicav1 "hdsd/gen/hdsd/replica/v1"
)

// The newest and the oldest protocol that this release speaks. They rise only for what an older release must not
// misread: it ignores fields that it does not know.
const (
	protocol       = 1
	oldestProtocol = 1
)

// hello returns the first frame to a replica.
func (o *Options) hello(dialled string) *replicav1.Frame {
	return &replicav1.Frame{Message: &replicav1.Frame_Hello{Hello: &replicav1.Hello{
		Id: o.ID, Process: o.Process, Protocol: protocol, OldestProtocol: oldestProtocol, Version: o.Version, Dialled: dialled,
	}}}
}

// helloOf returns the hello in the first frame of a replica, with an id and a protocol that both know.
func (o *Options) helloOf(f *replicav1.Frame) (*replicav1.Hello, error) {
	h := f.GetHello()
	switch {
	case h.GetId() == "":
		return nil, status.Errorf(codes.InvalidArgument, "replica %s awaits the hello of a replica of hdsd first: only those call replication.peer.address", o.ID)
	case h.GetProtocol() < oldestProtocol || h.GetOldestProtocol() > protocol:
		return nil, status.Errorf(codes.FailedPrecondition,
			"replica %s (version %s) speaks the protocols %d to %d of replicas, and replica %s (version %s) those from %d to %d: upgrade the older one of the two, over a release between them",
			o.ID, o.Version, oldestProtocol, protocol, h.GetId(), h.GetVersion(), h.GetOldestProtocol(), h.GetProtocol())
	}
	return h, nil
}

// checkCaller checks the hello of a replica that calls this one.
func (o *Options) checkCaller(h *replicav1.Hello) error {
	switch {
	case h.GetId() == o.ID && h.GetProcess() == o.Process:
		return status.Errorf(codes.FailedPrecondition, "the address of replica %s leads to replica %s itself: set replication.peer.advertise of %s to an address of its own", h.GetDialled(), o.ID, h.GetDialled())
	case h.GetDialled() != o.ID:
		return status.Errorf(codes.FailedPrecondition, "the address of replica %s leads to replica %s: set replication.peer.advertise of %s to an address of its own", h.GetDialled(), o.ID, h.GetDialled())
	case h.GetId() == o.ID:
		return status.Errorf(codes.FailedPrecondition, "two replicas have the id %s: give each an id of its own", o.ID)
	case h.GetId() > o.ID:
		return status.Errorf(codes.FailedPrecondition, "replica %s calls replica %s, and not the reverse: the one with the smaller id calls", o.ID, h.GetId())
	}
	return nil
}

// checkDialled checks the hello of the replica that answers a call.
func (o *Options) checkDialled(h *replicav1.Hello, id, address string) error {
	if h.GetId() != id {
		return status.Errorf(codes.FailedPrecondition, "%s is not replica %s but replica %s: set replication.peer.advertise of %s to an address of its own", address, id, h.GetId(), id)
	}
	return nil
}
