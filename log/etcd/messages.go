package etcd

// The words of etcd. The package etcd has for its clients has them, too, with a hundred errors that a program would carry
// along; a test compares them.

// Keys and values of the metadata of calls.
const (
	requireLeaderKey = "hasleader"
	requireLeader    = "true"
	tokenKey         = "token"
)

// Messages of errors. Releases of etcd do not change them.
const (
	saysAuthFailed       = "etcdserver: authentication failed, invalid user ID or password"
	saysAuthNotEnabled   = "etcdserver: authentication is not enabled"
	saysAuthOldRevision  = "etcdserver: revision of auth store is old"
	saysCompacted        = "etcdserver: mvcc: required revision has been compacted"
	saysInvalidAuthToken = "etcdserver: invalid auth token"
	saysLeaseExist       = "etcdserver: lease already exists"
	saysLeaseNotFound    = "etcdserver: requested lease not found"
	saysNoSpace          = "etcdserver: mvcc: database space exceeded"
	saysPermissionDenied = "etcdserver: permission denied"
	saysRequestTooLarge  = "etcdserver: request is too large"
	saysUserEmpty        = "etcdserver: user name is empty"
	saysUserNotFound     = "etcdserver: user name not found"
)
