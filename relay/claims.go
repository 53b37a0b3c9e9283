package relay

import (
	"hash/maphash"
	"math/bits"

	"hdsd/peer/limit"
)

// claimsPerName claims count as one name towards limits.max_subscriptions: they take as much memory as a
// name of 160 bytes.
const claimsPerName = 16

// claims has the names and versions of a client's initial_resource_versions that hdsd does not know, until
// the control plane sends or removes these resources. It is a part of a ledger.
type claims struct {
	takeRoom  func(names int64) (*limit.Lease, error) // of limits.max_subscriptions
	lease     *limit.Lease                            // nil: there are no claims, or no limit
	slots     []claim                                 // hash table with linear probing, by name
	unsettled int                                     // unsettled claims
}

// claim has 32 bits of the hashes of a name and a version. By a collision, a client misleads only itself.
type claim struct{ name, version uint32 }

// Versions of a free slot, and of a claim that the control plane has answered. Hashes are larger.
const (
	free = iota
	settled
)

// reserve forgets all claims, and reports whether there is room for others. Without room, claims keeps
// none, so that the client gets its resources again.
func (c *claims) reserve(count int) bool {
	c.clear()
	if count == 0 {
		return true
	}
	lease, err := c.takeRoom(int64((count + claimsPerName - 1) / claimsPerName))
	if err == nil {
		c.lease, c.slots = lease, make([]claim, count+count/4+1)
	}
	return err == nil
}

// add adds a claim, if reserve has found room.
func (c *claims) add(name, version []byte) {
	if len(c.slots) == 0 {
		return
	}
	hash := maphash.Bytes(seed, name)
	slot := c.find(hash)
	if slot.version == free {
		c.unsettled++
	}
	*slot = claim{uint32(hash), versionOf(maphash.Bytes(seed, version))}
}

func versionOf(hash uint64) uint32 { return max(uint32(hash), settled+1) }

// find returns the slot of a name by its hash, or the free slot for it.
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

// trim gives the room back if there is no claim.
func (c *claims) trim() {
	if c.unsettled == 0 {
		c.clear()
	}
}

// settle forgets the claim of a name. It reports whether there was one, and whether it had this version.
func (c *claims) settle(name, version string) (claimed, same bool) {
	if c.unsettled == 0 {
		return false, false
	}
	slot := c.find(maphash.String(seed, name))
	if slot.version <= settled {
		return false, false
	}
	same = slot.version == versionOf(maphash.String(seed, version))
	slot.version = settled
	if c.unsettled--; c.unsettled == 0 {
		c.clear()
	}
	return true, same
}

func (c *claims) clear() {
	c.lease.Release()
	c.slots, c.unsettled, c.lease = nil, 0, nil
}
