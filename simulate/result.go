package simulate

// Result is the answer. Programs rely on its JSON.
type Result struct {
	Checkers   int `json:"checkers"`
	Zones      int `json:"zones"` // that checkers are in
	Clusters   int `json:"clusters"`
	Endpoints  int `json:"endpoints"` // those not checked included
	DataPlanes int `json:"dataPlanes"`

	Plan         Plan        `json:"plan"`
	LostCheckers Losses      `json:"lostCheckers"`
	LostZones    []ZoneLoss  `json:"lostZones"`
	NotChecked   []Shortfall `json:"notChecked"`   // by any checker
	TooFew       []Shortfall `json:"tooFewChecks"` // by fewer checkers than they should
	Probing      Probing     `json:"probing"`
}

// Plan says what checkers have to do. The caller measures its time.
type Plan struct {
	Seconds         float64 `json:"seconds"`
	Digest          string  `json:"digest"`
	Checks          int     `json:"checks"` // pairs of endpoint and checker
	Endpoints       Spread  `json:"endpointsPerChecker"`
	ChecksPerSecond Spread  `json:"checksPerSecondPerChecker"`
	Burst           Spread  `json:"burstChecksPerSecondPerChecker"` // within the initial_jitter, where that is shorter than the interval
	Clusters        Spread  `json:"clustersPerChecker"`
	MaxOfShare      float64 `json:"maxOfShare"` // how full the fullest checker is: its endpoints / its share by weight
}

// Loss is what happens when checkers are lost for good.
type Loss struct {
	Moved           int     `json:"moved"`           // checks that others take over
	Told            int     `json:"told"`            // checkers that get another specifier
	Busiest         int     `json:"busiest"`         // most endpoints of a checker after it
	ChecksPerSecond float64 `json:"checksPerSecond"` // most of a checker after it
	NotChecked      int     `json:"notChecked"`      // more endpoints that nobody checks
	Dropped         int     `json:"dropped"`         // checks that nobody takes over
}

// Fits tells whether others take all checks over.
func (l Loss) Fits() bool { return l.Dropped <= 0 }

// Losses sums up the loss of each of many checkers. Worst and Median are taken for
// each figure alone.
type Losses struct {
	Tried     int    `json:"tried"`
	Fit       int    `json:"fit"` // losses after which others take all checks over
	Median    Loss   `json:"median"`
	Worst     Loss   `json:"worst"`
	Costliest string `json:"costliest"` // the checker whose loss moves most
	Missed    string `json:"missed"`    // the checker whose loss drops most; empty where all fit
}

// ZoneLoss is what happens when a zone is lost.
type ZoneLoss struct {
	Region   string `json:"region"`
	Zone     string `json:"zone"`
	Checkers int    `json:"checkers"`
	Loss
}

// Shortfall is endpoints that are not checked as they should be.
type Shortfall struct {
	Reason    string `json:"reason"`
	Endpoints int    `json:"endpoints"`
	Clusters  int    `json:"clusters"` // that have them
	Example   string `json:"example"`  // one of these
}

// Probing compares the checks a second of hdsd's checkers with those of data planes
// that check for themselves. It counts endpoints that are in the plan.
type Probing struct {
	Checks         float64 `json:"checksPerSecond"`
	PerEndpoint    Spread  `json:"checksPerSecondPerEndpoint"`
	OwnChecks      float64 `json:"ownChecksPerSecond"` // by data planes
	PerDataPlane   Spread  `json:"ownChecksPerSecondPerDataPlane"`
	OwnPerEndpoint Spread  `json:"ownChecksPerSecondPerEndpoint"`
	Times          float64 `json:"times"` // how many times as many data planes make; 0 where there are no checks
}
