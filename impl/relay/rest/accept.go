package rest

import (
	"mime"
	"sort"
	"strconv"
	"strings"
)

// Clause is one media range of an Accept header.
type Clause struct {
	Media  string
	Params map[string]string
	q      float64
}

// ParseAccept reads an Accept header, the most wanted first. What cannot be read is left out.
func ParseAccept(header string) []Clause {
	var out []Clause
	for _, part := range strings.Split(header, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		c := Clause{Media: media, Params: params, q: 1}
		if s, ok := params["q"]; ok {
			if c.q, err = strconv.ParseFloat(s, 64); err != nil {
				c.q = 1 // as goautoneg, which kube-apiserver reads it with; there q=0 is the least wanted, not refused
			}
		}
		out = append(out, c)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].q > out[j].q })
	return out
}
