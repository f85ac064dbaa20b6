package evaluate

import (
	"math"
	"strconv"
)

// readable returns a rounded value with its unit for people; the record has all digits.
func readable(value float64, unit string) string {
	switch unit {
	case "ratio":
		return short(100*value) + " %"
	case "seconds":
		if math.Abs(value) < 1 {
			return short(1000*value) + " ms"
		}
		return short(value) + " s"
	case "milliseconds":
		return readable(value/1000, "seconds")
	case "cores":
		return short(1000*value) + " millicores"
	case "bytes":
		return short(value/(1<<20)) + " MiB"
	case "":
		return short(value)
	default:
		return short(value) + " " + unit
	}
}

// short rounds a value: from 100 on to an integer, below that to one decimal, or to two
// digits if one decimal would hide the value.
func short(value float64) string {
	switch size := math.Abs(value); {
	case size >= 99.95:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case size >= 0.1 || size == 0:
		return strconv.FormatFloat(math.Round(10*value)/10, 'f', -1, 64)
	default:
		return strconv.FormatFloat(value, 'g', 2, 64)
	}
}

// readableText is readable for the digits of a record.
func readableText(digits, unit string) string {
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return digits
	}
	return readable(value, unit)
}
