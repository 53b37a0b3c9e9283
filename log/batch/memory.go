package batch

// MaxMemory limits the memory of decoded entries, beside the uncompressed batch. Two million endpoints that
// change at once take 1.6 GB with seven observations each.
const MaxMemory = 8 * MaxBytes

// These are the bytes of decoded items in memory, with their share of maps, without texts.
const (
	entryMemory       = 320
	textMemory        = 32
	nameMemory        = 16
	hashMemory        = 8
	statusMemory      = 40
	overrideMemory    = 288
	transitionMemory  = 320
	observationMemory = 64
	planMemory        = 96
	rowMemory         = 64 // beside its value
	verdictMemory     = 128
	establishedMemory = 80
	trialsMemory      = 80
	proofMemory       = 32
	shapeMemory       = 16
	lossMemory        = 128
	penaltyMemory     = 48
	replacedMemory    = 192
	eventMemory       = 208
	operatorMemory    = 64
)

// list encodes the number of the items that follow, and counts their memory.
func (e *encoder) list(items, memory int) {
	e.uint(uint64(items))
	e.memory += int64(items) * int64(memory)
}

// list returns the number of the items that follow, of at least the given bytes each, and counts their
// memory before it is taken.
func (d *decoder) list(each, memory int) int {
	items := d.Size(each)
	if !d.take(items, memory) {
		return 0
	}
	return items
}

// take counts the memory of items, and fails if there is too little.
func (d *decoder) take(items, memory int) bool {
	if *d.memory -= int64(items) * int64(memory); *d.memory < 0 {
		d.Fail()
	}
	return !d.Bad
}
