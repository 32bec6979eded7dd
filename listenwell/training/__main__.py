"""`python -m listenwell.training RECIPE.yaml`: the same as `listenwell train`, on a machine that is bare."""

import argparse
import sys
from pathlib import Path

from listenwell.errors import ListenwellError
from listenwell.recipe import read_recipe
from listenwell.training.recipe import TrainRecipe
from listenwell.training.run import train

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m listenwell.training", description=__doc__)
    parser.add_argument("recipe", type=Path, nargs="+", help="YAML files, run one after the other")
    try:
        for file in parser.parse_args().recipe:
            print(f"result: {train(read_recipe(TrainRecipe, file)) / 'result.json'}", flush=True)
    except ListenwellError as error:
        print(f"listenwell: {error}", file=sys.stderr)
        sys.exit(1)
