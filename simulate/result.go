package simulate

// Result is the answer. Programs rely on its JSON.
type Result struct {
	Checkers   int `json:"checkers"`
	Zones      int `json:"zones"` // with checkers
	Clusters   int `json:"clusters"`
	Endpoints  int `json:"endpoints"` // including those not checked
	DataPlanes int `json:"dataPlanes"`

	Plan         Plan        `json:"plan"`
	LostCheckers Losses      `json:"lostCheckers"`
	LostZones    []ZoneLoss  `json:"lostZones"`
	NotChecked   []Shortfall `json:"notChecked"`   // by any checker
	TooFew       []Shortfall `json:"tooFewChecks"` // by fewer checkers than required
	Probing      Probing     `json:"probing"`
}

// Plan is the load of checkers. The caller measures its time.
type Plan struct {
	Seconds         float64 `json:"seconds"`
	Digest          string  `json:"digest"`
	Checks          int     `json:"checks"` // pairs of endpoint and checker
	Endpoints       Spread  `json:"endpointsPerChecker"`
	ChecksPerSecond Spread  `json:"checksPerSecondPerChecker"`
	Burst           Spread  `json:"burstChecksPerSecondPerChecker"` // within the initial_jitter, where that is shorter than the interval
	Clusters        Spread  `json:"clustersPerChecker"`
	MaxOfShare      float64 `json:"maxOfShare"` // load of the fullest checker: its endpoints / its share by weight
}

// Loss is the effect of losing checkers for good.
type Loss struct {
	Moved           int     `json:"moved"`           // checks taken over by others
	Told            int     `json:"told"`            // checkers that get another specifier
	Busiest         int     `json:"busiest"`         // most endpoints of one checker afterwards
	ChecksPerSecond float64 `json:"checksPerSecond"` // most of one checker afterwards
	NotChecked      int     `json:"notChecked"`      // endpoints that become unchecked
	Dropped         int     `json:"dropped"`         // checks that no checker takes over
}

// Fits reports whether others take all checks over.
func (l Loss) Fits() bool { return l.Dropped <= 0 }

// Losses sums up the loss of each of many checkers. Worst and Median are taken for
// each figure alone.
type Losses struct {
	Tried     int    `json:"tried"`
	Fit       int    `json:"fit"` // losses after which others take all checks over
	Median    Loss   `json:"median"`
	Worst     Loss   `json:"worst"`
	Costliest string `json:"costliest"` // checker with the largest number of moved checks
	Missed    string `json:"missed"`    // checker with the largest number of dropped checks; empty if all fit
}

// ZoneLoss is the effect of losing a zone.
type ZoneLoss struct {
	Region   string `json:"region"`
	Zone     string `json:"zone"`
	Checkers int    `json:"checkers"`
	Loss
}

// Shortfall is endpoints without enough checkers.
type Shortfall struct {
	Reason    string `json:"reason"`
	Endpoints int    `json:"endpoints"`
	Clusters  int    `json:"clusters"` // affected clusters
	Example   string `json:"example"`  // one of these
}

// Probing compares the checks per second of hdsd's checkers with those of data planes that check
// for themselves. It counts planned endpoints.
type Probing struct {
	Checks         float64 `json:"checksPerSecond"`
	PerEndpoint    Spread  `json:"checksPerSecondPerEndpoint"`
	OwnChecks      float64 `json:"ownChecksPerSecond"` // by data planes
	PerDataPlane   Spread  `json:"ownChecksPerSecondPerDataPlane"`
	OwnPerEndpoint Spread  `json:"ownChecksPerSecondPerEndpoint"`
	Times          float64 `json:"times"` // checks of data planes / checks of hdsd; 0 without checks
}
