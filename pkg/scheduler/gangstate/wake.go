package gangstate

import "time"

// Wake makes refused gangs eligible again: what their last attempts were refused for has perhaps gone.
func (r *Registry) Wake(keys []Key, now time.Time) Effects {
	var e Effects
	for _, k := range keys {
		e.add(r.Retry(k, now))
	}
	return e
}
