package member

// Reach is whether the cloud can be reached, as far as is known. It is decided in one place, by what the servers of the
// cloud answer (see Probing), and everything else in a hub goes by it.
type Reach uint8

// What is known of the way to the cloud. CloudUnknown is what it is before anything was heard of the cloud: requests
// are tried.
const (
	CloudUnknown Reach = iota
	CloudHere
	CloudAway
)
