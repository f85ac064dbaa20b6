package settings

import "testing"

// In the AlterShield Operator 10 % of 5 replicas is a batch of 0 pods.
func TestABatchHasAtLeastOnePod(t *testing.T) {
	for _, tc := range []struct{ percent, replicas, want int32 }{
		{10, 5, 1}, {0, 5, 1}, {10, 0, 1}, {10, 19, 1}, {10, 20, 2}, {40, 5, 2}, {100, 7, 7},
	} {
		s := Settings{BatchPercent: tc.percent}
		if got := s.BatchSize(tc.replicas); got != tc.want {
			t.Errorf("%d %% of %d replicas is a batch of %d pods, want %d", tc.percent, tc.replicas, got, tc.want)
		}
	}
}

func TestABatchFitsIntoOneObject(t *testing.T) {
	s := Settings{BatchPercent: 100}
	if got := s.BatchSize(12000); got != 1000 {
		t.Errorf("a batch of 12000 replicas has %d pods", got)
	}
}
