package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// These functions make operations and comparisons of transactions.

func read(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func isWrite(op *pb.RequestOp) bool { return op.GetRequestRange() == nil }

func get(key []byte) *pb.RequestOp { return read(&pb.RangeRequest{Key: key}) }

func put(key, value []byte, lease int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value, Lease: lease}}}
}

func remove(from, until []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: from, RangeEnd: until}}}
}

// isCreated compares the create revision of a key. An absent key has 0.
func isCreated(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision}}
}

func isAbsent(key []byte) *pb.Compare { return isCreated(key, 0) }

func isPresent(key []byte) *pb.Compare {
	return &pb.Compare{Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_GREATER, TargetUnion: &pb.Compare_CreateRevision{}}
}

func hasLease(key []byte, lease int64) *pb.Compare {
	return &pb.Compare{Key: key, Target: pb.Compare_LEASE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Lease{Lease: lease}}
}

func hasValue(key, value []byte) *pb.Compare {
	return &pb.Compare{Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Value{Value: value}}
}

// firstKey returns the first key of the i-th response, or nil.
func firstKey(answer *pb.TxnResponse, i int) *mvccpb.KeyValue {
	if kvs := answer.Responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// keyCount returns the number of keys in the i-th response.
func keyCount(answer *pb.TxnResponse, i int) uint64 {
	return uint64(answer.Responses[i].GetResponseRange().GetCount())
}
