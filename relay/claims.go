package relay

import (
	"hash/maphash"
	"math/bits"

	"hdsd/peer/limit"
)

// claimsPerName is how many claims count as one name towards limits.max_subscriptions. They
// take as much memory as a name of 160 bytes.
const claimsPerName = 16

// claims are the versions that a client says it has of resources that it was not sent on its
// stream, until the control plane sends or removes these. They belong to a ledger.
type claims struct {
	take  func(names int64) (*limit.Lease, error) // of limits.max_subscriptions
	lease *limit.Lease                            // nil: there are none, or nothing bounds them
	slots []claim                                 // where the hash of the name says, or in the next free slot
	left  int                                     // that are not settled
}

// claim is a name and its version, as parts of hashes: a client can mislead only itself.
type claim struct{ name, version uint32 }

// The version of a slot that is free, and of a claim that the control plane has answered. Others are
// larger.
const (
	free = iota
	settled
)

// reserve forgets all claims, and makes place for so many. It reports whether there is room for them.
// Without, none are kept, so that the client is sent again what it has.
func (c *claims) reserve(count int) bool {
	c.clear()
	if count == 0 {
		return true
	}
	lease, err := c.take(int64((count + claimsPerName - 1) / claimsPerName))
	if err == nil {
		c.lease, c.slots = lease, make([]claim, count+count/4+1)
	}
	return err == nil
}

// add adds a claim, if there is room.
func (c *claims) add(name, version []byte) {
	if len(c.slots) == 0 {
		return
	}
	hash := maphash.Bytes(seed, name)
	slot := c.find(hash)
	if slot.version == free {
		c.left++
	}
	*slot = claim{uint32(hash), versionOf(maphash.Bytes(seed, version))}
}

func versionOf(hash uint64) uint32 { return max(uint32(hash), settled+1) }

// find returns the slot of a name, by its hash, or the free one where it belongs.
func (c *claims) find(hash uint64) *claim {
	high, _ := bits.Mul64(hash, uint64(len(c.slots)))
	for i := int(high); ; i++ {
		if i == len(c.slots) {
			i = 0
		}
		if slot := &c.slots[i]; slot.version == free || slot.name == uint32(hash) {
			return slot
		}
	}
}

// keep gives back what was reserved if no claim was added.
func (c *claims) keep() {
	if c.left == 0 {
		c.clear()
	}
}

// settle forgets a claim. It reports whether there was one, and whether the client said that it
// has this version.
func (c *claims) settle(name, version string) (claimed, same bool) {
	if c.left == 0 {
		return false, false
	}
	slot := c.find(maphash.String(seed, name))
	if slot.version <= settled {
		return false, false
	}
	same = slot.version == versionOf(maphash.String(seed, version))
	slot.version = settled
	if c.left--; c.left == 0 {
		c.clear()
	}
	return true, same
}

func (c *claims) clear() {
	c.lease.Release()
	c.slots, c.left, c.lease = nil, 0, nil
}
