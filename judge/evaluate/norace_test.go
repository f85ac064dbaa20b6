//go:build !race

package evaluate

const defaultReleases = 60
