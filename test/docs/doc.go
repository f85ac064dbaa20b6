// Package docs tests the pages of the repository: links lead somewhere, and
// files, packages and tests that a page names exist. `make verify` runs it.
package docs
