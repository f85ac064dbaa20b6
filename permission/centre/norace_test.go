//go:build !race

package centre

const slower = 1
