// Package docs tests the pages of the repository: the targets of links exist, and
// so do the files, packages and tests that a page names. The commands of pages are valid.
// `make verify` runs it.
package docs
