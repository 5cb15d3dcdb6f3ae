package directory

import "net/url"

const maxURL = 300 // bytes

// PlainURL reports whether a text is a URL of the form https://host:port.
func PlainURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	return u, err == nil && len(text) <= maxURL && u.Scheme == "https" && u.Hostname() != "" && u.Path == "" &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.User == nil && u.Opaque == ""
}
