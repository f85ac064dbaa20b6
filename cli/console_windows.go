package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// hasEscapeSequences turns on escape sequences, and reports whether the console has them.
func hasEscapeSequences(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
