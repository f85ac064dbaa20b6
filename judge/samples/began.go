package samples

// unseenCells is how many cells before its first sample a pod must have had no sample. In all but one
// of them another pod must have had some: a scrape can fail.
const unseenCells = 4

// Began returns the pods that began in the range which starts at since, so that the first value of a
// counter counts. The series are those of all pods that are scraped alike, key names their pod.
func Began(series []Series, g Grid, since float64, key func(map[string]string) string) map[string]bool {
	first, scraped := map[string]int{}, map[int]bool{}
	for _, s := range series {
		points := Numbers(s.Points)
		if len(points) == 0 {
			continue
		}
		pod := key(s.Labels)
		if c, seen := first[pod]; !seen || g.Cell(points[0].T) < c {
			first[pod] = g.Cell(points[0].T)
		}
		for _, p := range points {
			scraped[g.Cell(p.T)] = true
		}
	}
	out := map[string]bool{}
	for pod, c := range first {
		if began(c, g.Cell(since)+1, scraped) {
			out[pod] = true
		}
	}
	return out
}

// began reports whether a pod whose first sample is in a cell did not exist before. It existed
// if the range begins just before: the first sample is then only the first one that was read. It may
// have existed if Prometheus did not scrape: after a restart of Prometheus, all pods have a first sample.
func began(first, rangeStart int, scraped map[int]bool) bool {
	if first-rangeStart < unseenCells {
		return false
	}
	missed := 0
	for c := first - unseenCells; c < first; c++ {
		if !scraped[c] {
			missed++ // a scrape at the end of a cell may be in the next one
		}
	}
	return missed <= 1
}
