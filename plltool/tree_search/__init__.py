"""Start trees and the tree search."""
