package identity

import "time"

// Skew is how far a node's clock and the cloud's may be apart before a token counts as not yet valid.
const Skew = 5 * time.Minute
