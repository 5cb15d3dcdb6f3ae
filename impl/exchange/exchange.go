package exchange

import (
	"encoding/json"
	"net/http"
)

// Handler serves an exchange. node is the node whose hub asks, "" if somebody else does, who is refused by a text.
// most bounds the bytes of a request. exchange refuses what is invalid by an error: the answer is 400.
func Handler[Ask, Answer any](node func(*http.Request) string, refusal string, most int64,
	exchange func(node string, a Ask) (Answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		by := node(req)
		switch {
		case req.Method != http.MethodPost:
			w.Header().Set("Allow", "POST")
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		case by == "":
			http.Error(w, refusal, http.StatusForbidden)
			return
		}
		var a Ask
		err := json.NewDecoder(http.MaxBytesReader(w, req.Body, most)).Decode(&a)
		var out Answer
		if err == nil {
			out, err = exchange(by, a)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}
