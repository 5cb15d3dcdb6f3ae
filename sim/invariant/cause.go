package invariant

import (
	"net/http"
	"strconv"

	"github.com/weir-edge/weir/sim/client"
)

// Causes of re-lists that are no status codes.
const (
	causeUnknown   = "no cause was seen"
	causeShort     = "a watch ended within a second and had shown nothing"
	causeMalformed = "what came could not be read"
	causeConnect   = "no answer" // no connection, or it broke
)

// causeOf names an error as the cause of a re-list: "410 Gone".
func causeOf(op client.Op) string {
	switch {
	case op.Malformed:
		return causeMalformed
	case op.Code == 0:
		return causeConnect
	}
	if text := http.StatusText(op.Code); text != "" {
		return strconv.Itoa(op.Code) + " " + text
	}
	return strconv.Itoa(op.Code)
}
